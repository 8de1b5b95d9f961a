"""Lists of protected, sensitive and critical paths. `name_table` defines how names are matched."""

from __future__ import annotations

from typing import Final

RUN_LATER: Final = """
    .git .config/git .vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .ferrule
    .gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv .zlogin
    .zlogout .profile .envrc .npmrc .yarnrc .yarnrc.yml .pnp.* .pnpmfile.cjs bunfig.toml .bazelrc .bazelversion
    .bazeliskrc .pre-commit-config.yaml lefthook.* gradle-wrapper.properties maven-wrapper.properties .devcontainer.json
    .ripgreprc pyrightconfig.json .mcp.json .claude.json
    .hg .hgrc .cursor/mcp.json .cursor/hooks.json .codex .gemini/settings.json .exrc .nvimrc .nvim.lua .gdbinit
    .lldbinit .fleet .zed .direnvrc .pdbrc .Rprofile .irbrc .pryrc .ghci
    ~/.config/fish ~/.config/systemd ~/.config/autostart ~/.config/autostart-scripts ~/.config/plasma-workspace
    ~/.config/environment.d ~/.config/lxsession ~/.config/i3 ~/.config/sway ~/.config/hypr ~/.config/openbox
    ~/.config/bspwm ~/.config/awesome ~/.config/kitty ~/.config/alacritty ~/.config/wezterm ~/.wezterm.lua
    ~/.config/nvim ~/.vimrc ~/.vim ~/.gvimrc ~/.emacs ~/.emacs.d ~/.config/emacs ~/.nanorc ~/.config/Code
    ~/.config/VSCodium ~/.config/Cursor
    ~/.config/zed ~/.cursor ~/.gemini ~/.config/opencode ~/.config/goose ~/.aider.conf.yml
    ~/.config/zsh ~/.zsh ~/.oh-my-zsh ~/.zlogin ~/.login ~/.cshrc ~/.tcshrc ~/.kshrc ~/.mkshrc ~/.config/nushell
    ~/.config/powershell ~/.config/starship.toml ~/.config/direnv ~/.config/mise ~/.config/atuin ~/.bash_completion
    ~/.inputrc ~/.screenrc ~/.tmux.conf ~/.config/tmux ~/.xinitrc ~/.xsession ~/.xsessionrc ~/.xprofile ~/.xserverrc
    ~/.pam_environment ~/.forward ~/.procmailrc ~/.mailcap ~/.lesskey ~/.lessfilter ~/.config/lesskey
    ~/.config/hg ~/.config/gdb ~/.config/bat ~/.config/ripgrep ~/.config/pip ~/.pip ~/.condarc ~/.gemrc ~/.bundle
    ~/.config/pypoetry ~/.config/uv ~/.config/yarn ~/.config/containers ~/.bunfig.toml ~/.m2 ~/.gradle ~/.sbt
    ~/.config/composer ~/.composer ~/.jq ~/.psqlrc ~/.sqliterc ~/.my.cnf ~/.wgetrc ~/.curlrc ~/.ackrc ~/.pythonrc
    ~/.pythonrc.py ~/.Renviron ~/.docker ~/.local/bin ~/bin ~/.local/lib ~/.local/share/systemd
    ~/.local/share/applications ~/.local/share/dbus-1 ~/.local/share/gnome-shell ~/.local/share/nautilus
    ~/.pyenv ~/.rbenv ~/.nvm ~/.asdf ~/.asdfrc ~/.sdkman ~/.rustup ~/.volta ~/.bun ~/.deno ~/.krew
    ~/.local/state/ferrule ~/.config/ferrule ~/Library/LaunchAgents ~/Library/Preferences
"""
"""What programs run or trust on their own later. With a `~/` prefix, a name applies in the home folder only:
in a project such a file does nothing by itself."""

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
"""Named like a secret, but meant to be read."""

DELICATE: Final = "db/seeds .github/workflows/*.yml .github/workflows/*.yaml .gitlab-ci.yml Jenkinsfile"
"""Files whose changes affect other systems."""

SYSTEM: Final = """
    /etc/passwd /etc/passwd- /etc/shadow /etc/shadow- /etc/group /etc/group- /etc/gshadow /etc/gshadow-
    /etc/sudoers /etc/sudoers.d /etc/pam.d /etc/pam.conf /etc/security /etc/doas.conf /etc/master.passwd
    /etc/ld.so.preload /etc/subuid /etc/subgid /etc/polkit-1
"""
"""Access control of the machine: never written."""
