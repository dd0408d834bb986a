"""Finds the slope of y = 3x by gradient descent."""

import torch

x = torch.linspace(0, 1, 64)
slope = torch.zeros(1, requires_grad=True)
for _ in range(200):
    loss = ((slope * x - 3 * x) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        slope -= slope.grad
        slope.grad.zero_()
print(f"slope {slope.item():.1f}")
