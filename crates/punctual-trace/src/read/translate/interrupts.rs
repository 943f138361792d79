//! The names of interrupts: of devices from the events of their handlers, of vectors from the names of their events.

use std::collections::BTreeMap;

use crate::read::Order;
use crate::read::format::{EventFormat, Field, Shape};

/// Interrupts of higher numbers stay nameless: a trace that has so many is not believed.
const IRQS: u32 = 4096;

/// The names of interrupts, as far as events have them.
#[derive(Debug)]
pub struct Interrupts {
    irqs: BTreeMap<u32, Box<str>>,
    vectors: BTreeMap<u16, Box<str>>,
    changes: u64,
    /// Those that have been looked at, a bit each.
    seen: Vec<u64>,
    /// The number of the event that named each vector.
    named_by: [u16; 256],
    /// The events of vectors by their numbers, without `_entry`.
    events: BTreeMap<u16, Box<str>>,
    /// Where the event of a handler has its name.
    field: Option<Field>,
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            irqs: BTreeMap::new(),
            vectors: BTreeMap::new(),
            changes: 0,
            seen: vec![0; IRQS.div_ceil(64) as usize],
            named_by: [0; 256],
            events: BTreeMap::new(),
            field: None,
        }
    }
}

impl Interrupts {
    /// Every interrupt of a device, and what its first handler is called.
    pub fn irqs(&self) -> impl Iterator<Item = (u32, &str)> {
        self.irqs.iter().map(|(&irq, name)| (irq, &**name))
    }

    /// Every vector, and what the kernel calls it: `local_timer`.
    pub fn vectors(&self) -> impl Iterator<Item = (u16, &str)> {
        self.vectors.iter().map(|(&vector, name)| (vector, &**name))
    }

    /// How often one has been named.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes the names that formats have.
    pub(super) fn add(&mut self, format: &EventFormat) {
        if format.system == "irq_vectors" {
            if let Some(name) = format.name.strip_suffix("_entry") {
                self.events.insert(format.id, name.into());
            }
        } else if format.name == "irq_handler_entry" {
            self.field = format.field("name").filter(|field| field.shape == Shape::Located).cloned();
        }
    }

    /// A handler is entered.
    #[inline]
    pub(super) fn see_irq(&mut self, irq: u32, order: Order, record: &[u8], length: usize) {
        let (word, bit) = ((irq / 64) as usize, 1 << (irq % 64));
        if self.seen.get(word).is_some_and(|seen| seen & bit == 0) {
            self.seen[word] |= bit;
            self.name_irq(irq, order, record.get(..length).unwrap_or(record));
        }
    }

    #[cold]
    fn name_irq(&mut self, irq: u32, order: Order, record: &[u8]) {
        let located = self.field.as_ref().and_then(|field| order.u32(record, usize::from(field.offset)));
        let name = located.and_then(|at| record.get((at & 0xffff) as usize..)?.get(..(at >> 16) as usize));
        let name = name.map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.irqs.insert(irq, String::from_utf8_lossy(name).into());
            self.changes += 1;
        }
    }

    /// The handler of a vector is entered, says that event.
    #[inline]
    pub(super) fn see_vector(&mut self, vector: u16, event: u16) {
        if self.named_by.get(usize::from(vector)).is_some_and(|&named_by| named_by != event) {
            self.name_vector(vector, event);
        }
    }

    #[cold]
    fn name_vector(&mut self, vector: u16, event: u16) {
        self.named_by[usize::from(vector)] = event;
        if let Some(name) = self.events.get(&event) {
            self.vectors.insert(vector, name.clone());
            self.changes += 1;
        }
    }
}
