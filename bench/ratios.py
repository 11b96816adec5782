# SPDX-License-Identifier: Apache-2.0
"""What one run says about two arms: the median of the per-round ratios, with an interval.

A round measured every arm once, so what else the machine did in that second is in both numbers and
leaves the ratio nearly alone; absolute times do not travel from machine to machine.
"""
import random
import statistics
from dataclasses import dataclass

Round = dict[str, dict[str, float]]  # arm -> metric -> value

RESAMPLES = 1000
SEED = 20241  # the same rounds always give the same interval


@dataclass(frozen=True)
class Ratio:
    median: float
    low: float  # 95 % bootstrap interval of the median
    high: float


def per_round_ratios(rounds: list[Round], metric: str, arm: str, baseline: str) -> list[float]:
    ratios = []
    for number, measured in enumerate(rounds, start=1):
        try:
            above, below = measured[arm][metric], measured[baseline][metric]
        except KeyError as missing:
            raise ValueError(f"round {number} has no {missing}: an arm that errs fails the run")
        if below <= 0:
            raise ValueError(f"round {number}: {metric} of {baseline} is {below}")
        ratios.append(above / below)
    if not ratios:
        raise ValueError("no round was measured")
    return ratios


def median_ratio(rounds: list[Round], metric: str, arm: str, baseline: str) -> Ratio:
    ratios = per_round_ratios(rounds, metric, arm, baseline)
    generator = random.Random(SEED)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    return Ratio(statistics.median(ratios), quantile(medians, 0.025), quantile(medians, 0.975))


def change(new: list[Round], old: list[Round], metric: str, arm: str, baseline: str) -> Ratio:
    """How much larger the ratio of two arms is in the rounds of one build than in those of another."""
    ratios = [per_round_ratios(rounds, metric, arm, baseline) for rounds in (new, old)]
    generator = random.Random(SEED)

    def resampled(values: list[float]) -> float:
        return statistics.median(generator.choices(values, k=len(values)))

    changes = sorted(resampled(ratios[0]) / resampled(ratios[1]) for _ in range(RESAMPLES))
    return Ratio(statistics.median(ratios[0]) / statistics.median(ratios[1]), quantile(changes, 0.025),
                 quantile(changes, 0.975))


def quantile(ordered: list[float], share: float) -> float:
    """The value below which `share` of them lie; `ordered` is sorted and not empty."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def values_of(rounds: list[Round], arm: str, metric: str) -> list[float]:
    return sorted(measured[arm][metric] for measured in rounds if metric in measured.get(arm, {}))
