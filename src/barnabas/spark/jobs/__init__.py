"""Jobs for what outgrows one machine: audit of logs, mirrors of topics, tables sent to topics."""
