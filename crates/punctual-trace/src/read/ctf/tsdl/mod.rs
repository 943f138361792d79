//! TSDL, the language of metadata files: from text to declarations.

mod tokens;
mod types;

use std::collections::HashMap;

use self::tokens::{Token, tokens};
use super::types::Type;
use crate::format::Order;

/// The declarations of a metadata file.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) env: HashMap<String, String>,
    pub(super) clock: Clock,
    pub(super) packet_header: Option<Type>,
    pub(super) streams: HashMap<u64, Stream>,
}

/// The clock of the timestamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) name: String,
    /// Ticks per second.
    pub(super) frequency: u64,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) packet_context: Option<Type>,
    pub(super) event_header: Option<Type>,
    pub(super) event_context: Option<Type>,
    pub(super) events: HashMap<u64, Event>,
}

#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) context: Option<Type>,
    pub(super) fields: Option<Type>,
}

/// An error in the text, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) problem: String,
}

type Parsed<T> = Result<T, Wrong>;

/// Reads a metadata file.
pub(super) fn parse(text: &str) -> Parsed<Metadata> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        order: Order::NATIVE,
        types: HashMap::new(),
        depth: 0,
        declared: Metadata {
            env: HashMap::new(),
            clock: Clock { name: String::new(), frequency: 1_000_000_000 },
            packet_header: None,
            streams: HashMap::new(),
        },
    };
    // Types may be declared before the byte order.
    if let Some(order) = parser.find_order() {
        parser.order = order;
    }
    while parser.at < parser.tokens.len() {
        parser.declaration()?;
    }
    Ok(parser.declared)
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    /// The byte order of integers that do not name one.
    order: Order,
    /// By name, as in `unsigned long` or `struct packet_context`.
    types: HashMap<String, Type>,
    depth: usize,
    declared: Metadata,
}

/// The value of an attribute.
#[derive(Debug)]
enum Attribute {
    Text(String),
    Number(i128),
    Type(Type),
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn wrong<T>(&self, problem: impl Into<String>) -> Parsed<T> {
        let last = self.tokens.len().saturating_sub(1);
        let line = self.tokens.get(self.at.min(last)).map_or(1, |(_, line)| *line);
        Err(Wrong { line, problem: problem.into() })
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_it = self.peek() == Some(token);
        self.at += usize::from(is_it);
        is_it
    }

    fn sign(&mut self, sign: char) -> bool {
        self.take(&Token::Sign(sign))
    }

    fn expect(&mut self, sign: char) -> Parsed<()> {
        if self.sign(sign) { Ok(()) } else { self.wrong(format!("`{sign}` is missing")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn word(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.wrong("a name is missing"),
        }
    }

    fn number(&mut self) -> Parsed<i128> {
        let negative = self.sign('-');
        match self.peek() {
            Some(&Token::Number(number)) => {
                self.at += 1;
                Ok(if negative { -number } else { number })
            }
            _ => self.wrong("a number is missing"),
        }
    }

    /// Returns the value of `trace { byte_order = …; }`.
    fn find_order(&self) -> Option<Order> {
        let words = self.tokens.windows(3);
        let mut orders = words.filter_map(|three| match three {
            [(Token::Word(name), _), (Token::Sign('='), _), (Token::Word(order), _)]
                if name == "byte_order" =>
            {
                order_of(order)
            }
            _ => None,
        });
        // The first that is not `native`.
        orders.next()
    }

    fn declaration(&mut self) -> Parsed<()> {
        let Some(Token::Word(word)) = self.peek() else { return self.wrong("a declaration is missing") };
        match word.as_str() {
            "typealias" | "typedef" | "struct" | "variant" | "enum" => self.type_declaration(),
            "trace" | "env" | "clock" | "stream" | "event" | "callsite" => {
                let word = self.word()?;
                let attributes = self.block()?;
                self.sign(';');
                self.take_block(&word, attributes)
            }
            _ => self.wrong("this is no declaration"),
        }
    }

    fn path(&mut self) -> Parsed<String> {
        let mut path = self.word()?;
        while self.sign('.') {
            path = format!("{path}.{}", self.word()?);
        }
        Ok(path)
    }

    /// `{ name = value; path := type; … }`
    fn block(&mut self) -> Parsed<Vec<(String, Attribute)>> {
        self.expect('{')?;
        let mut attributes = Vec::new();
        while !self.sign('}') {
            let is_type = ["typealias", "typedef", "struct", "variant", "enum"];
            if is_type.iter().any(|word| self.is_word(word)) {
                self.type_declaration()?;
                continue;
            }
            let name = self.path()?;
            let value = if self.take(&Token::Becomes) {
                Attribute::Type(self.type_of(false)?)
            } else {
                self.expect('=')?;
                match self.peek() {
                    Some(Token::Text(text)) => {
                        let text = text.clone();
                        self.at += 1;
                        Attribute::Text(text)
                    }
                    Some(Token::Word(_)) => Attribute::Text(self.path()?),
                    _ => Attribute::Number(self.number()?),
                }
            };
            self.expect(';')?;
            attributes.push((name, value));
        }
        Ok(attributes)
    }

    fn take_block(&mut self, what: &str, attributes: Vec<(String, Attribute)>) -> Parsed<()> {
        let number = |wanted: &str| {
            attributes.iter().find_map(|(name, value)| match value {
                Attribute::Number(number) if name == wanted => u64::try_from(*number).ok(),
                _ => None,
            })
        };
        let (id, stream) = (number("id").unwrap_or(0), number("stream_id").unwrap_or(0));
        let mut event = Event::default();
        for (name, value) in attributes {
            let declared = &mut self.declared;
            match (what, name.as_str(), value) {
                ("trace", "packet.header", Attribute::Type(of)) => declared.packet_header = Some(of),
                ("env", _, Attribute::Text(text)) => _ = declared.env.insert(name, text),
                ("env", _, Attribute::Number(number)) => _ = declared.env.insert(name, number.to_string()),
                ("clock", "name", Attribute::Text(text)) => declared.clock.name = text,
                ("clock", "freq", Attribute::Number(number)) => {
                    declared.clock.frequency = u64::try_from(number).unwrap_or(0);
                }
                ("stream", part, Attribute::Type(of)) => {
                    let stream = declared.streams.entry(id).or_default();
                    match part {
                        "packet.context" => stream.packet_context = Some(of),
                        "event.header" => stream.event_header = Some(of),
                        "event.context" => stream.event_context = Some(of),
                        _ => {}
                    }
                }
                ("event", "name", Attribute::Text(text)) => event.name = text,
                ("event", "context", Attribute::Type(of)) => event.context = Some(of),
                ("event", "fields", Attribute::Type(of)) => event.fields = Some(of),
                _ => {}
            }
        }
        match what {
            "event" => _ = self.declared.streams.entry(stream).or_default().events.insert(id, event),
            "stream" => _ = self.declared.streams.entry(id).or_default(),
            _ => {}
        }
        Ok(())
    }
}

fn order_of(word: &str) -> Option<Order> {
    match word {
        "le" => Some(Order::Little),
        "be" | "network" => Some(Order::Big),
        _ => None,
    }
}
