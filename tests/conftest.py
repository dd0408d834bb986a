"""What holds in every suite."""

from hypothesis import HealthCheck, settings

settings.register_profile("any-pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-pace")  # a property is about values; a bound on time has a test of its own
