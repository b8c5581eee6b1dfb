"""Geometry, time grid and optimiser settings of the duct study."""
from dataclasses import dataclass


@dataclass
class DuctConfig:
    cells: int = 40
    length: float = 2.0
    steps: int = 180
    segment: int = 20
    courant: float = 0.5
    sound_speed: float = 1.0
    tone: float = 1.1
    liner_first: int = 8
    liner_last: int = 32
    liner_time: float = 0.6
    microphone: int = 37
    iterations: int = 25
    rate: float = 0.25
    admittance_max: float = 8.0
    area_weight: float = 0.02

    @property
    def dx(self):
        return self.length / self.cells

    @property
    def dt(self):
        return self.courant * self.dx / self.sound_speed
