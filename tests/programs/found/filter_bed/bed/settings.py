import dataclasses


@dataclasses.dataclass(frozen=True)
class BedSettings:
    layers: int = 24
    rounds: int = 15
    rate: float = 0.3
    days: int = 6
    limit: float = 0.25
    upkeep: float = 0.01
