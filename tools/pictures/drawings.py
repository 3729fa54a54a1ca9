"""The pictures of docs/, by name. `python -m tools.pictures` writes them to docs/pictures."""

from tools.pictures.shapes import (
    BLUE,
    GREEN,
    ORANGE,
    PLAIN,
    RED,
    Message,
    Move,
    arrow,
    box,
    cells,
    line,
    picture,
    sequence,
    states,
    text,
    title,
)


def tutorial() -> str:
    return picture(
        760,
        230,
        [
            box((20, 85), (140, 50), "send_orders.py", BLUE),
            arrow([(160, 110), (250, 110)], "records"),
            box((250, 30), (170, 160)),
            title((250, 30), 170, "broker: topic orders"),
            *(box((275, 62 + 40 * number), (120, 30), f"partition {number}") for number in range(3)),
            arrow([(420, 80), (550, 55)], "a group reads", at=(485, 50)),
            box((550, 30), (170, 50), "kitchen.py", BLUE),
            arrow([(420, 140), (550, 165)], "Spark reads", at=(485, 172)),
            box((550, 125), (170, 80)),
            title((550, 125), 170, "pipeline shop.yaml"),
            box((570, 155), (130, 36), "table large", GREEN),
        ],
    )


def overview() -> str:
    brokers = [box((265, 60 + 62 * number), (150, 46), f"broker {number + 1}", BLUE) for number in range(3)]
    return picture(
        800,
        330,
        [
            box((20, 40), (170, 210)),
            title((20, 40), 170, "clients"),
            box((35, 72), (140, 54), "Kafka clients\nin any language"),
            box((35, 140), (140, 40), "Python clients"),
            box((35, 194), (140, 40), "command line"),
            arrow([(190, 145), (250, 145)], "Kafka's\nprotocol", at=(220, 112)),
            box((250, 28), (180, 222)),
            title((250, 28), 180, "cluster"),
            *brokers,
            arrow([(340, 250), (340, 282)]),
            box((250, 282), (180, 36), "ZooKeeper", PLAIN),
            text((445, 305), "who is alive, who is the controller", "start", 12),
            arrow([(430, 120), (520, 120)], "read"),
            arrow([(520, 160), (430, 160)], "write", at=(475, 178)),
            box((520, 60), (130, 160), "pipelines\non Spark", ORANGE),
            arrow([(650, 140), (690, 140)]),
            box((690, 80), (95, 120), "Delta,\nIceberg,\nParquet", GREEN),
        ],
    )


def pipeline() -> str:
    return picture(
        800,
        250,
        [
            box((20, 60), (110, 60), "topic\norders", BLUE),
            arrow([(130, 90), (170, 90)]),
            box((170, 30), (420, 120)),
            title((170, 30), 420, "one batch"),
            box((185, 62), (90, 56), "decode"),
            arrow([(275, 90), (300, 90)]),
            box((300, 62), (110, 56), "quality\nrules"),
            arrow([(410, 90), (435, 90)]),
            box((435, 62), (140, 56), "steps:\nSQL or Python"),
            arrow([(590, 70), (660, 50)]),
            arrow([(590, 110), (660, 130)]),
            box((660, 24), (120, 48), "topic\nlarge-orders", BLUE),
            box((660, 108), (120, 48), "table\norders", GREEN),
            arrow([(230, 118), (230, 205), (300, 205)]),
            arrow([(355, 118), (355, 182)]),
            box((300, 182), (170, 46), "topic of dead letters", RED),
            text((485, 209), "bad rows, with the reason", "start", 12),
        ],
    )


def cluster() -> str:
    parts = [text((400, 24), "topic orders: three partitions, three replicas each", size=14)]
    for broker in range(3):
        x = 30 + 255 * broker
        parts += [box((x, 44), (230, 150)), title((x, 44), 230, f"broker {broker + 1}")]
        for partition in range(3):
            leads = partition == broker
            words = f"partition {partition}: {'leader' if leads else 'follower'}"
            parts.append(box((x + 25, 72 + 39 * partition), (180, 30), words, ORANGE if leads else PLAIN))
    parts.append(text((400, 220), "clients talk to leaders; followers copy from them", size=12))
    return picture(800, 240, parts)


def log() -> str:
    segments = ["0 to 4161", "4162 to 9877", "9878 ..."]
    parts = [text((20, 30), "partition orders-0: a directory", "start", 14)]
    for number, name in enumerate(segments):
        x = 20 + number * 245
        parts += [
            box((x, 46), (225, 56), f"segment\noffsets {name}", ORANGE if number == 2 else BLUE),
        ]
    parts += [
        text((632, 122), "active: appends go here", size=12),
        text((20, 160), "one segment: files with the same name", "start", 14),
        box((20, 176), (225, 120), "", PLAIN),
        text((132, 196), "00000000000000004162.index", size=12),
        cells((38, 206), ["+0", "+52", "+97"], [PLAIN] * 3, (63, 28)),
        cells((38, 234), ["0", "4130", "8260"], [PLAIN] * 3, (63, 28)),
        text((132, 282), "offset and position, every 4 KB", size=12),
        box((265, 176), (470, 120), "", PLAIN),
        text((500, 196), "00000000000000004162.log", size=12),
        cells((281, 212), ["batch", "batch", "batch", "batch", "batch", "batch"], [GREEN] * 6, (73, 40)),
        text((500, 282), "batches of records, as producers sent them", size=12),
        arrow([(245, 232), (281, 232)]),
        text(
            (20, 320),
            "To find an offset: the segment by its name, the entry by a search; then read on.",
            "start",
            12,
        ),
    ]
    return picture(760, 335, parts)


def compaction() -> str:
    before = ["a=1", "b=1", "a=2", "c=1", "b=2", "a=3", "c=–"]
    kept = [RED, RED, RED, RED, GREEN, GREEN, ORANGE]
    return picture(
        620,
        250,
        [
            text((20, 28), "before: keys and values", "start", 14),
            cells((20, 42), before, kept, (60, 34)),
            *(text((50 + 60 * number, 92), str(number), size=11) for number in range(7)),
            text((455, 64), "c has no value:\na tombstone", "start", 12),
            text((20, 140), "after: the newest record of each key, with its offset", "start", 14),
            cells((20, 154), ["b=2", "a=3", "c=–"], [GREEN, GREEN, ORANGE], (60, 34)),
            *(text((50 + 60 * place, 204), str(number), size=11) for place, number in enumerate((4, 5, 6))),
            text((220, 176), "later the tombstone goes too", "start", 12),
        ],
    )


def requests() -> str:
    return picture(
        800,
        270,
        [
            box((20, 100), (100, 60), "client", PLAIN),
            arrow([(120, 120), (190, 120)], "frame"),
            arrow([(190, 145), (120, 145)], "reply", at=(155, 162)),
            box((175, 20), (600, 190)),
            title((175, 20), 600, "one event loop: no locks"),
            box((190, 100), (120, 60), "connection\nnet/", BLUE),
            arrow([(310, 130), (350, 130)]),
            box((350, 100), (120, 60), "dispatch\nbroker/", BLUE),
            arrow([(470, 115), (510, 75)]),
            arrow([(470, 145), (510, 170)]),
            box((510, 50), (120, 50), "handler\nof the API", BLUE),
            box((510, 145), (120, 50), "short way\nin C", ORANGE),
            arrow([(630, 80), (665, 100)]),
            arrow([(630, 165), (665, 145)]),
            box((665, 92), (95, 60), "log\nof a partition", GREEN),
            text(
                (475, 240),
                "fsync, compression and passwords: in threads.   compaction: in a process",
                size=12,
            ),
        ],
    )


def producing() -> str:
    return picture(
        800,
        240,
        [
            box((20, 90), (120, 60), "your threads\nsend()", BLUE),
            arrow([(140, 120), (200, 120)], "record", at=(170, 108)),
            box((200, 24), (240, 192)),
            title((200, 24), 240, "memory: batches by partition"),
            cells((222, 58), ["r", "r", "r", "r"], [GREEN] * 4, (49, 34)),
            cells((222, 108), ["r", "r", "", ""], [ORANGE, ORANGE, PLAIN, PLAIN], (49, 34)),
            cells((222, 158), ["r", "", "", ""], [ORANGE, PLAIN, PLAIN, PLAIN], (49, 34)),
            arrow([(440, 75), (520, 110)], "full, or\nlinger.ms is over", at=(508, 62)),
            box((520, 90), (110, 60), "I/O thread\nof the client", BLUE),
            arrow([(630, 105), (690, 80)]),
            arrow([(630, 135), (690, 165)]),
            box((690, 60), (90, 40), "broker 1"),
            box((690, 145), (90, 40), "broker 2"),
        ],
    )


def positions() -> str:
    colours = [BLUE, BLUE, BLUE, GREEN, GREEN, ORANGE, ORANGE, ORANGE, PLAIN, PLAIN]
    marks = [
        (40, "log start"),
        (190, "committed"),
        (290, "position"),
        (440, "high watermark"),
        (540, "log end"),
    ]
    parts = [cells((40, 60), [str(number) for number in range(10)], colours, (50, 40))]
    for x, words in marks:
        parts += [line((x, 48), (x, 116)), text((x, 40), words, size=12)]
    parts += [
        arrow([(190, 140), (40, 140)]),
        text((115, 158), "lead", size=12),
        arrow([(190, 140), (440, 140)]),
        text((315, 158), "lag: not processed yet", size=12),
        text((490, 140), "not yet\non all replicas", size=12),
    ]
    return picture(600, 180, parts)


def group_states() -> str:
    places = {
        "Empty": (100.0, 60.0),
        "Preparing": (400.0, 60.0),
        "Completing": (400.0, 230.0),
        "Stable": (100.0, 230.0),
        "Dead": (700.0, 60.0),
    }
    moves = [
        Move("Empty", "Preparing", "a member joins", -8, (0, -4)),
        Move("Preparing", "Empty", "no member is left", -8, (0, 14)),
        Move("Preparing", "Completing", "all have joined,\nor the time is over", -10, (66, -10)),
        Move("Completing", "Preparing", "a member\nchanges", -10, (-38, 10)),
        Move("Completing", "Stable", "the leader has assigned", 0, (0, 18)),
        Move("Stable", "Preparing", "a member joins, leaves\nor is silent", 0, (-70, -12)),
        Move("Preparing", "Dead", "from any state:\nit is deleted", 0, (0, -18)),
    ]
    return states((800, 290), places, moves)


def rebalance() -> str:
    return sequence(
        ["member 1 (leader)", "coordinator", "member 2 (new)"],
        [
            Message("member 2 (new)", "coordinator", "JoinGroup: my topics"),
            Message("member 1 (leader)", "coordinator", "Heartbeat"),
            Message("coordinator", "member 1 (leader)", "rebalance in progress", True),
            Message("member 1 (leader)", "coordinator", "JoinGroup: my topics"),
            Message("coordinator", "member 1 (leader)", "generation 2, all members", True),
            Message("coordinator", "member 2 (new)", "generation 2", True),
            Message("member 1 (leader)", "member 1 (leader)", "assigns partitions"),
            Message("member 1 (leader)", "coordinator", "SyncGroup: assignment"),
            Message("member 2 (new)", "coordinator", "SyncGroup"),
            Message("coordinator", "coordinator", "writes it to the log"),
            Message("coordinator", "member 1 (leader)", "your partitions", True),
            Message("coordinator", "member 2 (new)", "your partitions", True),
        ],
        260,
    )


def replication() -> str:
    rows = [("leader", 8, 5), ("follower, in sync", 6, 4), ("follower, in sync", 5, 5)]
    parts = []
    for number, (name, end, mark) in enumerate(rows):
        y = 40 + 66 * number
        colours = [GREEN if offset < mark else ORANGE for offset in range(end)]
        parts += [
            text((20, y + 22), name, "start"),
            cells((150, y), [str(offset) for offset in range(end)], colours, (46, 34)),
        ]
        if number:
            turn = 560 + 30 * number
            parts.append(arrow([(440, y + 17), (turn, y + 17), (turn, 57), (530, 57)], dashed=True))
    parts += [
        line((380, 26), (380, 222), "#3c9d5c", True),
        text((380, 20), "high watermark 5: all in-sync replicas have these", size=12),
        text((500, 116), "fetch from 6", size=12),
        text((500, 182), "fetch from 5", size=12),
        text((150, 250), "green: known to be committed.   orange: not yet known to be", "start", 12),
    ]
    return picture(720, 270, parts)


def controller() -> str:
    parts = [
        box((20, 30), (170, 54), "request:\ncreate topic orders", PLAIN),
        arrow([(190, 57), (250, 57)]),
        box((250, 30), (150, 54), "controller\n(one of the brokers)", ORANGE),
        arrow([(400, 57), (470, 57)], "append"),
        box((470, 20), (310, 74)),
        title((470, 20), 310, "metadata log in ZooKeeper"),
        cells((485, 48), ["topic a", "broker 3", "leader", "orders"], [GREEN] * 4, (70, 34)),
    ]
    for number in range(3):
        x = 130 + 230 * number
        parts += [
            arrow([(625, 94), (625, 130), (x + 85, 130), (x + 85, 158)]),
            box((x, 158), (170, 78)),
            title((x, 158), 170, f"broker {number + 1}"),
            box((x + 20, 186), (130, 36), "image", BLUE),
        ]
    return picture(800, 255, parts)


def transaction() -> str:
    return sequence(
        ["producer", "coordinator", "partitions"],
        [
            Message("producer", "coordinator", "InitProducerId"),
            Message("coordinator", "producer", "producer id, epoch", True),
            Message("producer", "partitions", "Produce: batches with the id and epoch"),
            Message("partitions", "coordinator", "is this partition part of it?"),
            Message("producer", "coordinator", "EndTxn: commit"),
            Message("coordinator", "coordinator", "writes the decision: it is final"),
            Message("coordinator", "producer", "done", True),
            Message("coordinator", "partitions", "markers: committed"),
        ],
        270,
    )


DRAWINGS = {
    "tutorial": tutorial,
    "overview": overview,
    "pipeline": pipeline,
    "cluster": cluster,
    "log": log,
    "compaction": compaction,
    "requests": requests,
    "producing": producing,
    "positions": positions,
    "group-states": group_states,
    "rebalance": rebalance,
    "replication": replication,
    "controller": controller,
    "transaction": transaction,
}
