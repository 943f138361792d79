//! The types of declarations: integers, structures, variants, and names for them.

use std::rc::Rc;

use super::super::types::{Enumeration, Integer, Length, Structure, Type, Variant};
use super::tokens::Token;
use super::{Attribute, Parsed, Parser, order_of};

/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 32;

impl Parser {
    /// `typealias TYPE := NAME;`, `typedef TYPE NAME;` or `struct NAME { … };`
    pub(super) fn type_declaration(&mut self) -> Parsed<()> {
        if self.is_word("typealias") {
            self.at += 1;
            let of = self.type_of(false)?;
            if !self.take(&Token::Becomes) {
                return self.wrong("`:=` is missing");
            }
            let name = self.words(false)?;
            self.types.insert(name, of);
        } else if self.is_word("typedef") {
            self.at += 1;
            let of = self.type_of(true)?;
            let (name, of) = self.declarator(of)?;
            self.types.insert(name, of);
        } else {
            self.type_of(false)?;
        }
        self.expect(';')
    }

    /// Parses words such as `unsigned long`; in a `declaration`, all but the last, which is the
    /// declared name.
    fn words(&mut self, declaration: bool) -> Parsed<String> {
        let mut words: Vec<String> = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            let next = self.tokens.get(self.at + 1).map(|(token, _)| token);
            if declaration && !matches!(next, Some(Token::Word(_))) {
                break;
            }
            words.push(word.clone());
            self.at += 1;
        }
        if words.is_empty() { self.wrong("a type is missing") } else { Ok(words.join(" ")) }
    }

    /// Parses a type; in a `declaration` a name follows.
    pub(super) fn type_of(&mut self, declaration: bool) -> Parsed<Type> {
        if self.depth >= MAX_DEPTH {
            return self.wrong("types are nested too deeply");
        }
        self.depth += 1;
        let result = self.type_within(declaration);
        self.depth -= 1;
        result
    }

    fn type_within(&mut self, declaration: bool) -> Parsed<Type> {
        let Some(Token::Word(word)) = self.peek() else { return self.wrong("a type is missing") };
        match word.as_str() {
            "integer" => {
                self.at += 1;
                self.integer().map(Type::Integer)
            }
            "floating_point" => {
                self.at += 1;
                self.floating_point()
            }
            "string" => {
                self.at += 1;
                if self.peek() == Some(&Token::Sign('{')) {
                    self.block()?;
                }
                Ok(Type::Text)
            }
            "struct" => {
                self.at += 1;
                self.structure()
            }
            "variant" => {
                self.at += 1;
                self.variant()
            }
            "enum" => {
                self.at += 1;
                self.enumeration()
            }
            _ => {
                let name = self.words(declaration)?;
                self.known(&name)
            }
        }
    }

    fn known(&self, name: &str) -> Parsed<Type> {
        match self.types.get(name) {
            Some(of) => Ok(of.clone()),
            None => self.wrong(format!("the type `{name}` has not been declared")),
        }
    }

    /// Parses the name of a structure, variant or enumeration, if there is one, and adds its kind.
    fn tag(&mut self, what: &str) -> Option<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let name = format!("{what} {word}");
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    fn named(&mut self, name: Option<String>, of: Type) -> Type {
        if let Some(name) = name {
            self.types.insert(name, of.clone());
        }
        of
    }

    fn integer(&mut self) -> Parsed<Integer> {
        let (mut size, mut align, mut integer) = (
            None,
            None,
            Integer { bits: 0, align: 1, signed: false, order: self.order, text: false, clock: false },
        );
        for (name, value) in self.block()? {
            match (name.as_str(), value) {
                ("size", Attribute::Number(number)) => size = Some(number),
                ("align", Attribute::Number(number)) => align = Some(number),
                ("signed", Attribute::Number(number)) => integer.signed = number != 0,
                ("signed", Attribute::Text(text)) => {
                    integer.signed = matches!(text.as_str(), "true" | "TRUE")
                }
                ("byte_order", Attribute::Text(text)) => {
                    integer.order = order_of(&text).unwrap_or(self.order);
                }
                ("encoding", Attribute::Text(text)) => integer.text = !text.eq_ignore_ascii_case("none"),
                ("map", Attribute::Text(text)) => integer.clock = text.starts_with("clock."),
                _ => {}
            }
        }
        integer.bits = match size {
            Some(bits @ 1..=64) => bits as u32,
            Some(bits) => return self.wrong(format!("an integer has {bits} bits")),
            None => return self.wrong("an integer has no size"),
        };
        let usual = if integer.bits.is_multiple_of(8) { 8 } else { 1 };
        integer.align = self.alignment(align.unwrap_or(usual))?;
        Ok(integer)
    }

    fn alignment(&self, align: i128) -> Parsed<u64> {
        match u64::try_from(align) {
            Ok(align) if align.is_power_of_two() && align <= 4096 => Ok(align),
            _ => self.wrong(format!("{align} is no alignment")),
        }
    }

    fn floating_point(&mut self) -> Parsed<Type> {
        let (mut bits, mut align) = (0, 8);
        for (name, value) in self.block()? {
            match (name.as_str(), value) {
                ("exp_dig" | "mant_dig", Attribute::Number(number @ 0..=1024)) => bits += number as u64,
                ("align", Attribute::Number(number)) => align = self.alignment(number)?,
                _ => {}
            }
        }
        Ok(Type::Opaque { bits, align })
    }

    fn structure(&mut self) -> Parsed<Type> {
        let name = self.tag("struct");
        if !self.sign('{') {
            return self.known(&name.unwrap_or_default());
        }
        let fields = self.fields()?;
        let mut align = fields.iter().map(|(_, field)| field.align()).max().unwrap_or(1).max(1);
        if self.is_word("align") {
            self.at += 1;
            self.expect('(')?;
            let number = self.number()?;
            align = align.max(self.alignment(number)?);
            self.expect(')')?;
        }
        let structure = Type::Structure(Rc::new(Structure { fields, align }));
        Ok(self.named(name, structure))
    }

    /// Parses up to the closing `}`.
    fn fields(&mut self) -> Parsed<Vec<(String, Type)>> {
        let mut fields = Vec::new();
        while !self.sign('}') {
            if self.is_word("typealias") || self.is_word("typedef") {
                self.type_declaration()?;
                continue;
            }
            let of = self.type_of(true)?;
            // A structure that is only declared has no field name.
            if self.sign(';') {
                continue;
            }
            fields.push(self.declarator(of)?);
            self.expect(';')?;
        }
        Ok(fields)
    }

    /// `name`, `name[16]` or `name[other_field]`
    fn declarator(&mut self, mut of: Type) -> Parsed<(String, Type)> {
        let name = self.word()?;
        let mut lengths = Vec::new();
        while self.sign('[') {
            lengths.push(match self.peek() {
                Some(Token::Number(_)) => {
                    let number = self.number()?;
                    match u64::try_from(number) {
                        Ok(number) => Length::Fixed(number),
                        Err(_) => return self.wrong(format!("an array has {number} elements")),
                    }
                }
                _ => Length::Field(self.path()?),
            });
            self.expect(']')?;
        }
        for length in lengths.into_iter().rev() {
            of = Type::Array(Rc::new((of, length)));
        }
        Ok((name, of))
    }

    fn variant(&mut self) -> Parsed<Type> {
        let name = self.tag("variant");
        let tag = match self.sign('<') {
            true => {
                let tag = self.path()?;
                self.expect('>')?;
                Some(tag)
            }
            false => None,
        };
        let options = match self.sign('{') {
            true => self.fields()?,
            false => match self.known(name.as_deref().unwrap_or_default())? {
                Type::Variant(known) => known.options.clone(),
                _ => return self.wrong("this is no variant"),
            },
        };
        let variant = Type::Variant(Rc::new(Variant { tag: tag.unwrap_or_default(), options }));
        Ok(self.named(name, variant))
    }

    fn enumeration(&mut self) -> Parsed<Type> {
        let name = self.tag("enum");
        let base = match self.sign(':') {
            true => self.type_of(false)?,
            false => match (self.peek(), &name) {
                (Some(Token::Sign('{')), _) => self.known("int")?,
                (_, Some(name)) => return self.known(name),
                _ => return self.wrong("an enumeration has no type"),
            },
        };
        let Type::Integer(base) = base else { return self.wrong("an enumeration is of no integer") };
        self.expect('{')?;
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.sign('}') {
            let label = match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    text
                }
                _ => self.word()?,
            };
            let (mut first, mut last) = (next, next);
            if self.sign('=') {
                first = self.number()?;
                last = if self.take(&Token::Dots) { self.number()? } else { first };
            }
            labels.push((label, first, last));
            next = last.saturating_add(1);
            if !self.sign(',') && self.peek() != Some(&Token::Sign('}')) {
                return self.wrong("`,` is missing");
            }
        }
        let enumeration = Type::Enumeration(Rc::new(Enumeration { base, labels }));
        Ok(self.named(name, enumeration))
    }
}
