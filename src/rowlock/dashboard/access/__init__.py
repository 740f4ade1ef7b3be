"""Access: who a visitor is, what they may do, and how they log in."""
