"""plan -> Kubernetes objects, for an image that a registry holds by digest."""

from agentbox.render.kubernetes.objects import KUBERNETES_FILE, kubernetes
from agentbox.render.kubernetes.security import LEVELS, PodSecurityError, Violation, violations

__all__ = ["KUBERNETES_FILE", "LEVELS", "PodSecurityError", "Violation", "kubernetes", "violations"]
