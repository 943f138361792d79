//! A small perf.data in either byte order: the corpus of the fuzzer, and the reference of tests.

use super::writer::Writer;

const FORMAT: &str = "name: softirq_entry\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
const EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

/// IDENTIFIER, TID, TIME, CPU and RAW.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;

impl Writer {
    fn u64s(&mut self, values: &[u64]) -> &mut Self {
        values.iter().for_each(|&value| _ = self.number(value, 8));
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes.extend(text.as_bytes());
        self
    }

    fn record(&mut self, kind: u64, content: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.number(kind, 4).number(0, 4);
        content(self);
        let size = (self.bytes.len() - start) as u64;
        let mut head = Self::new(self.big);
        head.number(size, 2);
        self.bytes[start + 6..start + 8].copy_from_slice(&head.bytes);
    }

    /// Appends a sample of the event with that ID.
    fn sample(&mut self, id: u64, time: u64, cpu: u64, vec: u64) {
        self.record(9, |w| {
            w.number(id, 8).number(17, 4).number(17, 4).number(time, 8).number(cpu, 4).number(0, 4);
            w.number(12, 4).number(77, 2).number(0, 2).number(17, 4).number(vec, 4);
        });
    }

    /// Appends the end of a record that is not a sample.
    fn place(&mut self, time: u64, cpu: u64) {
        self.number(17, 4).number(17, 4).number(time, 8).number(cpu, 4).number(0, 4).number(5, 8);
    }
}

/// Returns the file.
pub(crate) fn perf_data(big: bool) -> Vec<u8> {
    let mut data = Writer::new(big);
    data.record(3, |w| {
        w.number(17, 4).number(17, 4).text("reader\0\0");
        w.place(0, 0);
    });
    data.sample(5, 150, 1, 3);
    data.sample(5, 100, 0, 1);
    data.record(68, |_| {});
    data.record(2, |w| {
        w.u64s(&[5, 7]).place(255, 1);
    });
    data.sample(5, 260, 1, 5);
    // An event that the file does not describe.
    data.sample(99, 230, 0, 9);
    data.sample(5, 200, 0, 2);
    data.record(68, |_| {});

    let mut tracing = Writer::new(big);
    tracing.bytes.extend(b"\x17\x08\x44tracing0.6\0");
    tracing.number(big.into(), 1).number(8, 1).number(4096, 4);
    tracing.text("header_page\0").number(PAGE.len() as u64, 8).text(PAGE);
    tracing.text("header_event\0").number(EVENT.len() as u64, 8).text(EVENT);
    tracing.number(0, 4).number(1, 4).text("irq\0").number(1, 4);
    tracing.number(FORMAT.len() as u64, 8).text(FORMAT);
    // No symbols, no texts of trace_printk, no names.
    tracing.number(0, 4).number(0, 4).number(0, 8);

    // The header, the event IDs, the event's description, the formats, and the data with the offset
    // of the formats.
    let (ids, attributes, formats) = (104, 112, 112 + 128);
    let start = formats + tracing.bytes.len() as u64;
    let mut file = Writer::new(big);
    file.text(if big { "2ELIFREP" } else { "PERFILE2" });
    file.u64s(&[104, 128, attributes, 128, start, data.bytes.len() as u64, 0, 0, 1 << 1, 0, 0, 0]);
    file.number(5, 8);
    file.number(2, 4).number(112, 4).u64s(&[77, 1, SAMPLE_TYPE, 0, 1 << 18 | 1 << 25]);
    file.u64s(&[0; 5]).number(0, 4).number(1, 4);
    file.u64s(&[0; 2]).u64s(&[ids, 8]);
    file.bytes.extend(&tracing.bytes);
    file.bytes.extend(&data.bytes);
    file.u64s(&[formats, tracing.bytes.len() as u64]);
    file.bytes
}
