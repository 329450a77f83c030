"""What the figures of bench/ share: rounds, workloads, facts about the machine, reports."""
