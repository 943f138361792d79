//! What is fuzzed: one function for each reader, for the fuzzer and for the test that needs none.
#![allow(dead_code)]

use std::sync::{Arc, LazyLock};

use punctual_trace::read::format::{EventFormat, PageLayout, check_header_event};
use punctual_trace::read::page::Page;
use punctual_trace::read::translate::Translator;
use punctual_trace::read::{Order, Trace};
use punctual_trace::write::formats;

static FORMATS: LazyLock<Vec<EventFormat>> = LazyLock::new(formats::all);

/// Any text as each of the three kinds of formats, and records of whatever an event format says.
pub(crate) fn format(data: &[u8]) {
    for order in [Order::Little, Order::Big] {
        if let Ok(layout) = PageLayout::parse(data, order) {
            let _ = Page::open(&layout, data).map(|mut page| while let Ok(Some(_)) = page.next_record() {});
        }
    }
    let _ = check_header_event(data);
    for system in ["sched", "irq_vectors", "syscalls", "ftrace"] {
        if let Ok(format) = EventFormat::parse(system, data) {
            let translator = Translator::new(Order::Little, &[format], &[1]);
            records(translator, data);
        }
    }
}

fn records(mut translator: Translator, data: &[u8]) {
    let mut events = Vec::new();
    for start in 0..data.len().min(64) {
        let record = punctual_trace::read::page::Record::new(1, &data[start..]);
        let _ = translator.translate(0, &record, &mut events);
    }
}

/// Any bytes as a page, in either order of bytes, and its records as events.
pub(crate) fn page(data: &[u8]) {
    for (order, long) in [(Order::Little, 8), (Order::Big, 8), (Order::Little, 4)] {
        let layout = PageLayout { order, long, ..PageLayout::usual(4096) };
        let mut translator = Translator::new(order, &FORMATS, &[1]);
        let mut events = Vec::new();
        if let Ok(mut page) = Page::open(&layout, data) {
            // Each record takes at least four bytes.
            for _ in 0..=data.len() / 4 {
                match page.next_record() {
                    Ok(Some(record)) => {
                        assert!(record.offset + record.length() <= data.len());
                        let _ = translator.translate(0, &record, &mut events);
                    }
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
}

/// Any bytes as a trace.dat, and all its events, in order.
pub(crate) fn dat(data: &[u8]) {
    let Ok(trace) = Trace::from_bytes("fuzz", Arc::new(data.to_vec())) else { return };
    let Ok(events) = trace.events() else { return };
    let mut last = 0;
    // A few bytes may say to have the data of thousands of CPUs, all in one place.
    for event in events.take(100_000) {
        match event {
            Ok(event) => {
                assert!(event.time >= last);
                last = event.time;
            }
            Err(error) => assert!(error.to_string().contains("fuzz: ")),
        }
    }
}
