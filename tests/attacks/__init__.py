"""What an attacker tries who may write every file but the installed source and the user's state folder."""
