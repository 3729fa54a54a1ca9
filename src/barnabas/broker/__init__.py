"""The broker: server, dispatch, and one handler file per API."""
