// Ticked rows: how many there are, and what can be done with them. Ticks stay while the table changes below them.
export function startSelection() {}
