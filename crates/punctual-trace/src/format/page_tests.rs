use super::*;

/// Pages written by hand, in either byte order.
struct Hand {
    order: Order,
    bytes: Vec<u8>,
}

impl Hand {
    fn new(order: Order, time: u64) -> Self {
        let mut hand = Self { order, bytes: Vec::new() };
        hand.u64(time);
        hand.u64(0);
        hand
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn head(&mut self, kind: u32, delta: u32) -> &mut Self {
        self.u32(if self.order == Order::Big { kind << 27 | delta } else { delta << 5 | kind })
    }

    /// Returns the page so far, with the size of its used part and `flags`.
    fn page(&self, flags: u64) -> (PageLayout, Vec<u8>) {
        let mut bytes = self.bytes.clone();
        let commit = (bytes.len() as u64 - 16) | flags;
        let commit = if self.order == Order::Big { commit.to_be_bytes() } else { commit.to_le_bytes() };
        bytes[8..16].copy_from_slice(&commit);
        bytes.resize(4096, 0xee);
        (PageLayout { order: self.order, ..PageLayout::usual(4096) }, bytes)
    }
}

fn all(layout: &PageLayout, bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, PageError> {
    let mut page = Page::open(layout, bytes)?;
    let mut records = Vec::new();
    while let Some(record) = page.next_record()? {
        records.push((record.time, record.data().to_vec()));
    }
    Ok(records)
}

#[test]
fn round_trips_every_kind_of_event_in_both_byte_orders() {
    for order in [Order::Little, Order::Big] {
        let mut hand = Hand::new(order, 1_000);
        hand.head(1, 5).u32(0x11);
        hand.head(30, 3).u32(2).head(2, 7).u64(0x22); // 2 << 27 | 3 later, then 7
        hand.head(29, 1).u32(8).u32(0xdd); // discarded, took no time
        hand.head(29, 6).u32(4).head(1, 0).u32(0x23); // discarded after 6
        hand.head(31, 9).u32(1 << 20).head(1, 1).u32(0x33); // absolute
        hand.head(0, 2).u32(12).u64(0x44); // its length is in a word of its own
        hand.head(29, 0).u32(0x55); // nothing more
        let (layout, bytes) = hand.page(0);
        let records = all(&layout, &bytes).unwrap();
        let found: Vec<_> = records.iter().map(|(time, data)| (*time, data.len())).collect();
        let extended = 1_005 + (2 << 27) + 3 + 7;
        let absolute = (1 << 47) + 9;
        let expected = [(1_005, 4), (extended, 8), (extended + 6, 4), (absolute + 1, 4), (absolute + 3, 8)];
        assert_eq!(found, expected);
    }
}

#[test]
fn keeps_high_bits_of_absolute_times() {
    let high = 3 << 59;
    assert_eq!(absolute(7, 5), 7);
    assert_eq!(absolute(7, high | 5), high | 7);
    assert_eq!(absolute(3, high | 5), (4 << 59) | 3);
}

#[test]
fn reads_counts_of_missed_events() {
    let mut hand = Hand::new(Order::Little, 1);
    hand.head(1, 0).u32(1);
    let missed = |flags: u64, count: Option<u64>| {
        let (layout, mut bytes) = hand.page(flags);
        if let Some(count) = count {
            bytes[24..32].copy_from_slice(&count.to_le_bytes());
        }
        Page::open(&layout, &bytes).unwrap().header().missed
    };
    assert_eq!(missed(0, None), None);
    assert_eq!(missed(MISSED, None), Some(Missed::Some));
    assert_eq!(missed(MISSED | MISSED_STORED, Some(77)), Some(Missed::Count(77)));
}

#[test]
fn reports_offset_of_error_in_hostile_pages() {
    let layout = PageLayout::usual(4096);
    assert_eq!(all(&layout, &[0; 10]).unwrap_err().problem, PageProblem::NoHeader);
    let mut bytes = vec![0; 4096];
    bytes[8..16].copy_from_slice(&4081u64.to_ne_bytes());
    assert_eq!(all(&layout, &bytes).unwrap_err().problem, PageProblem::Overlong { used: 4081, room: 4080 });

    let error = |build: &dyn Fn(&mut Hand)| {
        let mut hand = Hand::new(Order::Little, 0);
        build(&mut hand);
        let (layout, bytes) = hand.page(0);
        all(&layout, &bytes).unwrap_err()
    };
    let long = error(&|hand| {
        hand.head(1, 0).u32(1).head(28, 0);
    });
    assert_eq!((long.offset, long.problem), (24, PageProblem::EventTooLong { length: 116, left: 4 }));
    let long = error(&|hand| {
        hand.head(0, 0).u32(u32::MAX);
    });
    assert_eq!(long.problem, PageProblem::EventTooLong { length: 0x1_0000_0004, left: 8 });
    let short = error(&|hand| {
        hand.head(0, 0).u32(3);
    });
    assert_eq!(short.problem, PageProblem::EventTooShort);
    for kind in [0, 29, 30, 31] {
        let cut = error(&|hand| {
            hand.head(kind, 2);
        });
        assert!(matches!(cut.problem, PageProblem::EventTooLong { left: 4, .. }), "{kind}");
    }
    let padding = error(&|hand| {
        hand.head(29, 2).u32(u32::MAX);
    });
    assert!(matches!(padding.problem, PageProblem::EventTooLong { .. }));
}
