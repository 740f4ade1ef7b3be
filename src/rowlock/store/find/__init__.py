"""Find jobs: windows over live and ended ones, and pages made of them."""
