//! A small LTTng trace in either byte order: the corpus of the fuzzer, and the reference of tests.

use super::writer::Writer;

/// The metadata, without the byte order.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;

trace {
	major = 1;
	minor = 8;
	byte_order = ORDER;
	packet.header := struct {
		uint32_t magic;
		uint32_t stream_id;
	};
};

env {
	hostname = "vm";
	domain = "kernel";
	sysname = "Linux";
	kernel_release = "6.1.0-rt";
	tracer_name = "lttng-modules";
	tracer_major = 2;
};

clock {
	name = monotonic;
	description = "Monotonic Clock";
	freq = 1000000000; /* Hz */
	offset = 0;
};

typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_monotonic_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct {
			uint27_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_compact;
	packet.context := struct packet_context;
};

event {
	name = "sched_switch";
	id = 0;
	stream_id = 0;
	fields := struct {
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _prev_comm[16];
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_tid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_prio;
		integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } _prev_state;
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _next_comm[16];
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_tid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_prio;
	};
};

event {
	name = "irq_handler_entry";
	id = 1;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _irq;
		string _name;
	};
};

event {
	name = "irq_softirq_entry";
	id = 2;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _vec;
	};
};

event {
	name = "sys_futex";
	id = 40;
	stream_id = 0;
	fields := struct {
		integer { size = 64; align = 8; signed = 0; encoding = none; base = 16; } _uaddr;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _op;
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _val;
	};
};

event {
	name = "exit_syscall";
	id = 3;
	stream_id = 0;
	fields := struct {
		integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } _ret;
	};
};

event {
	name = "net_dev_queue";
	id = 41;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } __data_length;
		integer { size = 8; align = 8; signed = 0; encoding = none; base = 16; } _data[ __data_length ];
		enum : integer { size = 8; align = 8; signed = 1; } { "below" = -2 ... -1, "zero", "above" = 1 } _sign;
		variant <_sign> {
			string below;
			integer { size = 16; align = 8; signed = 0; } zero;
			struct { } above;
		} _more;
	};
};

event {
	name = "lttng_statedump_process_state";
	id = 4;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _tid;
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _name[16];
	};
};
"#;

impl Writer {
    fn name(&mut self, name: &str) -> &mut Self {
        let end = self.bytes.len() + 16;
        self.bytes.extend(name.as_bytes());
        self.bytes.resize(end, 0);
        self
    }

    /// Appends five bits of event number and 27 of time, or the extended form of both.
    fn head(&mut self, id: u64, time: u64) -> &mut Self {
        let short = |id: u64, time: u64| match self.big {
            true => id << 27 | time & 0x7ff_ffff,
            false => (time & 0x7ff_ffff) << 5 | id,
        };
        match id {
            0..31 => self.number(short(id, time), 4),
            _ => {
                // After the five bits, the rest is aligned to bytes.
                self.bytes.push(if self.big { 31 << 3 } else { 31 });
                self.number(id, 4).number(time, 8)
            }
        }
    }

    fn switch(&mut self, time: u64, from: (&str, u64, i64), state: u64, to: (&str, u64, i64)) -> &mut Self {
        self.head(0, time).name(from.0).number(from.1, 4).number(from.2 as u64, 4).number(state, 8);
        self.name(to.0).number(to.1, 4).number(to.2 as u64, 4)
    }
}

/// Appends a packet with a start and an end time.
fn packet(
    big: bool,
    (begin, end): (u64, u64),
    discarded: u64,
    cpu: u64,
    events: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    const PADDING: usize = 24;
    let mut content = Writer::new(big);
    events(&mut content);
    let used = 8 + 5 * 8 + 4 + content.bytes.len();
    let mut packet = Writer::new(big);
    packet.number(0xc1fc_1fc1, 4).number(0, 4).number(begin, 8).number(end, 8);
    packet
        .number(8 * used as u64, 8)
        .number(8 * (used + PADDING) as u64, 8)
        .number(discarded, 8)
        .number(cpu, 4);
    packet.bytes.extend(&content.bytes);
    packet.bytes.resize(used + PADDING, 0xaa);
    packet.bytes
}

const IDLE: (&str, u64, i64) = ("swapper/0", 0, 20);
const CONTROL: (&str, u64, i64) = ("control", 7, -91);
/// The first time: shortly before its low 27 bits wrap.
pub(crate) const START: u64 = (1 << 40) + (1 << 27) - 1_000;

/// Returns the metadata and the streams of two CPUs.
pub(crate) fn trace(big: bool) -> (String, [Vec<u8>; 2]) {
    let t = |after: u64| START + after;
    let first = packet(big, (t(0), t(5_000)), 0, 0, |w| {
        w.head(4, t(0)).number(9, 4).name("logger");
        w.head(1, t(100)).number(24, 4).bytes.extend(b"eth0\0");
        w.switch(t(200), IDLE, 0, CONTROL);
        w.head(40, t(500)).number(0x7ffe_1000, 8).number(128, 4).number(2, 4);
        w.switch(t(900), CONTROL, 1, IDLE);
        w.head(2, t(2_000)).number(3, 4);
        w.switch(t(3_000), IDLE, 0, CONTROL);
        w.head(3, t(3_500)).number(-11_i64 as u64, 8);
        w.switch(t(4_000), CONTROL, 0x100, ("logger", 9, 20));
    });
    let second = packet(big, (t(9_000), t(9_900)), 5, 0, |w| {
        w.head(41, t(9_100)).number(3, 4).bytes.extend(b"abc\xffmore\0");
        w.head(41, t(9_200)).number(0, 4).bytes.push(0);
        w.number(17, 2).head(41, t(9_300)).number(0, 4).bytes.push(1);
        w.switch(t(9_400), ("logger", 9, 20), 2, IDLE);
    });
    let other = packet(big, (t(50), t(60)), 0, 1, |w| {
        w.head(2, t(50)).number(1, 4).head(2, t(60)).number(7, 4);
    });
    let metadata = METADATA.replace("ORDER", if big { "be" } else { "le" });
    (metadata, [[first, second].concat(), other])
}

/// Returns the metadata and the first stream as one input of the fuzzer.
#[allow(dead_code)]
pub(crate) fn input(big: bool) -> Vec<u8> {
    let (metadata, [stream, _]) = trace(big);
    [metadata.as_bytes(), &[0], &stream].concat()
}
