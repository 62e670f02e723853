"""Input, read and checked: texts, lines, chats, pairs, arrays and saved captures."""
