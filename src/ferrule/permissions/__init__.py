"""The only place that says allow, ask or deny from rules and modes."""
