"""Current rights of agents: authorizations, metering, revocation. What a right means is defined in
`policy/rights`."""
