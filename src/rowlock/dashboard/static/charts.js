// Charts: <div data-chart='{"at": [...], "lines": [{"label", "tint", "values"}], "unit": "/s"}'>, drawn by uPlot in our colours.
export function startCharts() {}
