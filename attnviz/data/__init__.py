"""Frozen records that flow from room to room; numpy only."""
