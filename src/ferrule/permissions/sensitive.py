"""Paths that are more than files, as data, by what makes them so. `name_table` says how a name is read."""

from __future__ import annotations

from typing import Final

RUN_LATER: Final = """
    .git .config/git .vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .ferrule
    .gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv .zlogin
    .zlogout .profile .envrc .npmrc .yarnrc .yarnrc.yml .pnp.* .pnpmfile.cjs bunfig.toml .bazelrc .bazelversion
    .bazeliskrc .pre-commit-config.yaml lefthook.* gradle-wrapper.properties maven-wrapper.properties .devcontainer.json
    .ripgreprc pyrightconfig.json .mcp.json .claude.json
"""
"""What programs run, or trust, without being told to again."""

NOT_RUN_LATER: Final = ".claude/worktrees"
"""Below a protected folder, and not protected."""

SECRETS: Final = """
    .env .env.* *.pem *.key *.p12 *.pfx credentials.* secrets.* credentials secrets
    .ssh .gnupg id_rsa* id_ed25519* id_ecdsa* id_dsa* *.gpg
    .aws/credentials .aws/config .azure .gcloud .config/gcloud .kube/config
    .npmrc .pypirc .netrc .git-credentials .gem/credentials .docker/config.json .config/gh/hosts.yml
    database.yml database.json
"""
"""Credentials, keys and tokens: reading one asks too."""

NOT_SECRETS: Final = """
    .env.example .env.sample .env.template .env.dist .env.defaults id_rsa.pub id_ed25519.pub id_ecdsa.pub id_dsa.pub
    .ssh/known_hosts
"""
"""Named like a secret and made to be read."""

DELICATE: Final = "db/seeds .github/workflows/*.yml .github/workflows/*.yaml .gitlab-ci.yml Jenkinsfile"
"""What changes other systems when it is changed."""

SYSTEM: Final = """
    /etc/passwd /etc/passwd- /etc/shadow /etc/shadow- /etc/group /etc/group- /etc/gshadow /etc/gshadow-
    /etc/sudoers /etc/sudoers.d /etc/pam.d /etc/pam.conf /etc/security /etc/doas.conf /etc/master.passwd
    /etc/ld.so.preload /etc/subuid /etc/subgid /etc/polkit-1
"""
"""Who may do what on the machine: never written."""
