"""One module a tool: request in, evidence out, verdict."""
