"""Post-training quantization with ``quark-cli torch-llm-ptq``: catalogue, plan, command, tasks, verdict."""
