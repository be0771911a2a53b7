"""Papers: their printed numbers and claims, matched with measured numbers and judged, without any layout."""
