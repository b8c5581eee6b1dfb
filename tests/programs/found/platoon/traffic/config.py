from dataclasses import dataclass, field


@dataclass
class PlatoonConfig:
    cars: int = 10
    steps: int = 40
    segment: int = 10
    dt: float = 0.2
    start: list = field(default_factory=lambda: [1.1, 0.8, 1.6])
    rates: list = field(default_factory=lambda: [0.002, 0.002, 0.002])

    @property
    def segments(self) -> int:
        return self.steps // self.segment
