"""What is in a recording, by the schemas that are in it: python3 read_mcap.py run.mcap

Takes `pip install mcap-ros2-support`, which knows nothing of the gimbal.
"""

import sys

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

with open(sys.argv[1], "rb") as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    summary = reader.get_summary()
    for number, channel in summary.channels.items():
        schema = summary.schemas[channel.schema_id]
        count = summary.statistics.channel_message_counts[number]
        print(f"{channel.topic}: {count} of {schema.name}, {schema.encoding}")
        print(schema.data.decode())
    for *_, message, angles in reader.iter_decoded_messages(["/angles"], reverse=True):
        print(message.log_time, angles)
        break
