"""Records without behaviour: commands, events and effects as closed unions."""
