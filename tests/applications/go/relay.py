#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# relay.py HOST: what connects to 127.0.0.1:9042 reaches HOST:9042. Prints "ready" when it listens; ends when its input does.
import asyncio
import sys


async def pour(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def connected(reader, writer):
    there, away = await asyncio.open_connection(sys.argv[1], 9042)
    await asyncio.gather(pour(reader, away), pour(there, writer))


async def main():
    server = await asyncio.start_server(connected, "127.0.0.1", 9042)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main())
