"""What several commands share: options, filters, times, output, tables."""
