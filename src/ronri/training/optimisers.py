"""How weights follow gradients: AdamW, Adam-atan2 and Muon, made from a recipe.

A step never waits for the device: nothing on it is read back, and tensors are updated in groups.
Nor does it depend on anything but tensors, learning rates included: it can be recorded on a GPU and
replayed. All state exists from the beginning, so that saved state is either complete or refused.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from ronri.nn.ema import restore_tensors
from ronri.nn.linear import Linear
from ronri.recipe import Optim

# The quintic a x + b x^3 + c x^5 that pushes singular values fastest towards 1 (Jordan, 2024). It
# does not settle there but between 0.68 and 1.21, which does as well.
_QUINTIC = (3.4445, -4.7750, 2.0315)


@final
class AdamATan2(Optimizer):
    """Adam whose update is an angle (Everett et al., 2024, arXiv 2407.05872).

    `a * atan2(m, b * sqrt(v))` takes the place of `m / (sqrt(v) + eps)`: bounded, without an
    epsilon, and the same however gradients are scaled. Weight decay is decoupled.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float = 0.0,
        a: float = 1.0,
        b: float = 1.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "a": a, "b": b}
        super().__init__(params, defaults)
        for parameter in _parameters(self):
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.int64, device=parameter.device),
                "mean": torch.zeros_like(parameter),
                "square": torch.zeros_like(parameter),
            }

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            followed = _gradients(group["params"])
            if not followed:
                continue
            parameters, gradients = list(followed), list(followed.values())
            steps, means, squares = (
                [self.state[parameter][key] for parameter in parameters]
                for key in ("step", "mean", "square")
            )
            beta1, beta2 = group["betas"]
            torch._foreach_add_(steps, 1)
            torch._foreach_lerp_(means, gradients, 1 - beta1)
            torch._foreach_mul_(squares, beta2)
            torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
            # An angle does not change when both of its sides are scaled: the bias corrections of m
            # and v become one factor.
            counts = torch.stack(steps).float()
            # 1 - beta^count, without losing what is small: not every device has float64.
            one, two = (-torch.expm1(counts * math.log(beta)) for beta in (beta1, beta2))
            scales = torch._foreach_sqrt(squares)
            torch._foreach_mul_(scales, list((group["b"] * one / two.sqrt()).unbind()))
            updates = [mean.atan2(scale) for mean, scale in zip(means, scales, strict=True)]
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_mul_(updates, group["lr"] * group["a"])
            torch._foreach_sub_(parameters, updates)


@final
class Muon(Optimizer):
    """Momentum whose every update is made an orthogonal matrix (Jordan, 2024).

    The matrices that are stacked in one weight are orthogonalised each for itself, and all matrices
    of one shape, whosever they are, in one batched product. Weight decay is decoupled.
    """

    def __init__(
        self,
        layers: Sequence[Linear],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        self._parts: dict[Tensor, int] = {layer.weight: layer.parts for layer in layers}
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(list(self._parts), defaults)
        for weight in self._parts:
            self.state[weight] = {"momentum": torch.zeros_like(weight)}

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        (group,) = self.param_groups
        followed = _gradients(group["params"])
        if not followed:
            return
        weights, gradients = list(followed), list(followed.values())
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        # Nesterov: look one step further along the momentum.
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        updates = orthogonalised(self._matrices(weights, ahead))
        # An orthogonal matrix that is tall has short rows: give them length 1, as others have.
        torch._foreach_mul_(updates, [max(1.0, u.shape[0] / u.shape[1]) ** 0.5 for u in updates])
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_mul_(updates, group["lr"])
        torch._foreach_sub_(self._matrices(weights, weights), updates)

    def _matrices(self, weights: Sequence[Tensor], values: Sequence[Tensor]) -> list[Tensor]:
        """Views of the single matrices that are stacked in `values`, one value for each weight."""
        return [
            matrix
            for weight, value in zip(weights, values, strict=True)
            for matrix in value.chunk(self._parts[weight])
        ]


def orthogonalised(matrices: Sequence[Tensor]) -> list[Tensor]:
    """For each matrix U S V^T roughly U V^T, in float32."""
    wide = [matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix for matrix in matrices]
    same_shape: dict[torch.Size, list[int]] = {}
    for place, matrix in enumerate(wide):
        same_shape.setdefault(matrix.shape, []).append(place)
    found = list(matrices)
    for places in same_shape.values():
        results = newton_schulz(torch.stack([wide[place] for place in places])).unbind()
        for place, result in zip(places, results, strict=True):
            found[place] = result if wide[place] is matrices[place] else result.mT
    return found


def newton_schulz(
    matrices: Float[Tensor, "batch rows columns"], *, num_iterations: int = 5
) -> Float[Tensor, "batch rows columns"]:
    """Push the singular values of matrices that are no taller than wide towards 1."""
    a, b, c = _QUINTIC
    # The length is above every singular value, so that none starts above 1. Zero stays zero.
    lengths = torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=1e-30)
    # Later iterations mend the errors of earlier ones: bfloat16 is good enough where it is fast.
    fast = torch.bfloat16 if matrices.is_cuda else torch.float32
    x = (matrices / lengths).to(fast)
    for _ in range(num_iterations):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.float()


@final
class Optimisers:
    """The optimisers that share a module's parameters, stepped, saved and loaded as one."""

    def __init__(self, optimisers: Mapping[str, Optimizer], module: nn.Module) -> None:
        self._optimisers = dict(optimisers)
        self._names = {parameter: name for name, parameter in module.named_parameters()}
        self._full_rates = {name: _rate(one) for name, one in self._optimisers.items()}
        self._scale = 1.0
        for optimiser in self._optimisers.values():
            for group in optimiser.param_groups:
                # One tensor for ever: a recorded step reads whatever is written to it.
                place = group["params"][0].device if group["params"] else None
                group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=place)

    def set_rates(self, scale: float) -> None:
        """Let the next steps use this fraction of the full learning rates."""
        self._scale = scale
        for name, optimiser in self._optimisers.items():
            for group in optimiser.param_groups:
                group["lr"].fill_(self._full_rates[name] * scale)

    def step(self) -> None:
        """Follow the gradients."""
        for optimiser in self._optimisers.values():
            optimiser.step()

    def zero_grad(self) -> None:
        for optimiser in self._optimisers.values():
            optimiser.zero_grad()

    def learning_rates(self) -> dict[str, float]:
        """The rates of the latest step, by optimiser."""
        return {name: rate * self._scale for name, rate in self._full_rates.items()}

    def tensors(self) -> dict[str, Tensor]:
        """All state, as `optimiser.parameter.what`: not copies, they change with every step."""
        return {
            f"{name}.{self._names[parameter]}.{what}": value
            for name, optimiser in self._optimisers.items()
            for parameter in _parameters(optimiser)
            for what, value in optimiser.state[parameter].items()
        }

    def load_tensors(self, saved: Mapping[str, Tensor]) -> None:
        """Continue exactly from what `tensors` gave."""
        restore_tensors(self.tensors(), saved)


def build_optimisers(module: nn.Module, config: Optim) -> Optimisers:
    """What the recipe asks for, over the parameters of the module that want gradients."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if config.name == "adam-atan2":
        atan2 = AdamATan2(_groups(parameters, config), lr=config.lr, betas=config.betas)
        return Optimisers({"adam-atan2": atan2}, module)
    if config.name == "adamw":
        return Optimisers({"adamw": _adamw(parameters, config)}, module)
    layers = [
        layer
        for layer in module.modules()
        if isinstance(layer, Linear) and layer.hidden and layer.weight.requires_grad
    ]
    if not layers:
        raise ValueError("muon moves hidden matrices, and there are none here: choose adamw")
    muon = Muon(
        layers, lr=config.matrix_lr, momentum=config.momentum, weight_decay=config.weight_decay
    )
    hidden = set(_parameters(muon))
    others = [parameter for parameter in parameters if parameter not in hidden]
    return Optimisers({"muon": muon, "adamw": _adamw(others, config)}, module)


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Float[Tensor, ""]:
    """Shorten the gradient, all parameters together, to `max_norm`; 0 leaves it as it is.

    Returns how long it was.
    """
    followed = _gradients(parameters)
    if max_norm == 0:
        return nn.utils.get_total_norm(list(followed.values()))
    return nn.utils.clip_grad_norm_(list(followed), max_norm)


def _adamw(parameters: Sequence[nn.Parameter], config: Optim) -> AdamW:
    optimiser = AdamW(
        _groups(parameters, config),
        lr=config.lr,
        betas=config.betas,
        fused=True,
        capturable=any(parameter.is_cuda for parameter in parameters),
    )
    # What the first step would make, made now. A fused step counts on the device.
    for parameter in _parameters(optimiser):
        optimiser.state[parameter] = {
            "step": torch.zeros((), device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimiser


def _groups(parameters: Sequence[nn.Parameter], config: Optim) -> list[dict[str, Any]]:
    """The parameters that decay, and the others. Tables count as matrices."""
    decays = [config.decay == "all" or parameter.ndim >= 2 for parameter in parameters]
    return [
        {
            "params": [p for p, decay in zip(parameters, decays, strict=True) if decay is wanted],
            "weight_decay": config.weight_decay if wanted else 0.0,
        }
        for wanted in (True, False)
    ]


def _parameters(optimiser: Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimiser.param_groups for parameter in group["params"]]


def _gradients(parameters: Iterable[Tensor]) -> dict[Tensor, Tensor]:
    """The gradients of those parameters that have one."""
    return {parameter: parameter.grad for parameter in parameters if parameter.grad is not None}


def _rate(optimiser: Optimizer) -> float:
    """The learning rate, which all groups of an optimiser share."""
    return optimiser.param_groups[0]["lr"]
