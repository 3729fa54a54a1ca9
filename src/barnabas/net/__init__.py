"""Framed connections over asyncio, shared by broker and client."""
