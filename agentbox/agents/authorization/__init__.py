"""Who holds which rights now: authorizations, metering, revocation. What a right means is in
`policy/rights`.
"""
