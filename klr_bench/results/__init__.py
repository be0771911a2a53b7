"""From a configuration to rows of results: config, data, splits, selection, measure, runner, records."""
