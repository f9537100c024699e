# SPDX-License-Identifier: Apache-2.0
"""Random schemas, data and statements, side by side against Apache Cassandra and Tetrad."""
