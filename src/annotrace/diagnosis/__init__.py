"""What can be trusted: pure functions of tables, matrices and posteriors."""
