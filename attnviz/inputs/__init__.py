"""What is read: texts, lines, chats, pairs, arrays and saved captures, checked."""
