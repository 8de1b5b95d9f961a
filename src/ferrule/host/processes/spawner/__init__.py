"""The small process that starts everything else: parent, subreaper and jailer of what commands run.

It runs on its own interpreter without `site` and imports nothing but this
package and the standard library, so that it starts quickly and forks cheaply.
Ferrule's side of the conversation is `host/processes/spawner_link.py`.
"""
