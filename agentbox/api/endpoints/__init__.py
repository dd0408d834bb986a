"""The handlers of requests, one module a resource. They translate and delegate, and hold no state."""
