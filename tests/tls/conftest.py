# SPDX-License-Identifier: Apache-2.0
import logging

logging.getLogger("cassandra").setLevel(logging.ERROR)
