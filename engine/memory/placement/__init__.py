"""The planner: facts about machine, checkpoint and wish to a plan, or a refusal with numbers."""

from engine.memory.placement.facts import (
    Footprint,
    Geometry,
    Machine,
    Room,
    Streamable,
    VisionPart,
    Wish,
)
from engine.memory.placement.needs import Need
from engine.memory.placement.plan import Plan, Refused
from engine.memory.placement.planner import plan_placement

__all__ = [
    "Footprint",
    "Geometry",
    "Machine",
    "Need",
    "Plan",
    "Refused",
    "Room",
    "Streamable",
    "VisionPart",
    "Wish",
    "plan_placement",
]
