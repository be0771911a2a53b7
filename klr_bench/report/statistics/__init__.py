"""Statistical tests on arrays; docs/reports/statistics.md explains their assumptions."""
