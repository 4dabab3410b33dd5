"""Telling people and systems what happened: webhooks, chat, e-mail."""
