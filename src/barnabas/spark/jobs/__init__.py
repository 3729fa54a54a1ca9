"""Jobs that may be too large for one machine: audits of logs, mirrors of topics, tables written to topics."""
