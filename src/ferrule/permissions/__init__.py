"""The only place that decides allow, ask or deny from rules and modes."""
