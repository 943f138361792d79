//! The traversal of a source: where the rules apply, and which parts are skipped.

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Stmt, Token};

use super::Finder;
use super::rules::Operation;
use super::syntax::{called, has_let, is_for_tests, range};

impl Finder<'_> {
    fn function(
        &mut self,
        attributes: &[Attribute],
        signature: &syn::Signature,
        visit: impl FnOnce(&mut Self),
    ) {
        if !is_for_tests(attributes) {
            let constant = signature.constness.is_some();
            self.within(signature.ident.to_string(), |me| me.in_constant(constant, visit));
        }
    }

    /// Visits the content of a macro if it belongs to the protocol.
    fn in_macro(&mut self, of: &syn::Macro) {
        let Some(name) = of.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        match name.as_str() {
            // A constructor that is `const` except under loom.
            "const_new" => {
                if let Ok(function) = of.parse_body::<syn::ImplItemFn>() {
                    self.in_constant(true, |me| me.visit_impl_item_fn(&function));
                }
            }
            "assert" => {
                let arguments = of.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
                if let Some(condition) = arguments.ok().as_ref().and_then(|all| all.first()) {
                    self.visit_expr(condition);
                }
            }
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            _ => return,
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|of| of.ident == "Debug" || of.ident == "Display") {
            return;
        }
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        self.within(name.unwrap_or_else(|| "_".to_owned()), |me| visit::visit_item_impl(me, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, |me| me.visit_block(&item.block));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, |me| me.visit_block(&item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, |me| me.visit_block(block));
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.within(item.ident.to_string(), |me| {
            me.in_constant(true, |me| me.visit_expr(&item.expr));
        });
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.within(item.ident.to_string(), |me| {
            me.in_constant(true, |me| me.visit_expr(&item.expr));
        });
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(item.ident.to_string(), |me| me.in_constant(true, |me| me.visit_expr(&item.expr)));
    }

    // Constants in types are not part of the protocol.
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.in_macro(item);
    }

    fn visit_expr_const(&mut self, expr: &'ast syn::ExprConst) {
        self.in_constant(true, |me| visit::visit_expr_const(me, expr));
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
        self.in_constant(true, |me| me.visit_expr(&expr.len));
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if is_for_tests(&local.attrs) {
            return;
        }
        let Some(init) = &local.init else { return };
        self.visit_expr(&init.expr);
        match init.diverge.as_ref().map(|(_, otherwise)| &**otherwise) {
            // Its last statement cannot be dropped.
            Some(Expr::Block(block)) => {
                for statement in block.block.stmts.iter().rev().skip(1) {
                    self.statement(statement, false);
                }
                block.block.stmts.iter().for_each(|statement| self.visit_stmt(statement));
            }
            Some(other) => self.visit_expr(other),
            None => {}
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for (at, statement) in block.stmts.iter().enumerate() {
            self.statement(statement, at + 1 == block.stmts.len());
        }
        visit::visit_block(self, block);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        // `#[cfg(loom)]` on a statement is an attribute of its expression.
        let attributes = match statement {
            Stmt::Expr(Expr::Call(call), _) => &call.attrs,
            Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            Stmt::Expr(Expr::If(branch), _) => &branch.attrs,
            Stmt::Macro(of) => &of.attrs,
            _ => return visit::visit_stmt(self, statement),
        };
        if !is_for_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.negate(&expr.cond);
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.negate(&expr.cond);
        visit::visit_expr_while(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.negate(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        for (at, argument) in call.args.iter().enumerate() {
            self.ordering(argument, Operation::of(&name, at, call.args.len()));
        }
        if let ("max" | "min", [other]) = (name.as_str(), Vec::from_iter(&call.args).as_slice()) {
            let whole = range(call);
            let (receiver, other) =
                (self.text_of(&*call.receiver).to_owned(), self.text_of(*other).to_owned());
            let opposite = if name == "max" { "min" } else { "max" };
            let swapped = format!("{receiver}.{opposite}({other})");
            for replacement in [swapped, receiver, other] {
                self.replace(whole.clone(), replacement);
            }
        }
        let counts = [
            "wrapping_",
            "checked_",
            "saturating_",
            "overflowing_",
            "fetch_add",
            "fetch_sub",
            "nth",
            "rotate_",
        ];
        if counts.iter().any(|prefix| name.starts_with(prefix))
            && let Some(first) = call.args.first()
        {
            self.constant(first, true, false);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let name = called(&call.func).unwrap_or_default();
        for (at, argument) in call.args.iter().enumerate() {
            self.ordering(argument, Operation::of(&name, at, call.args.len()));
        }
        if let ("max" | "min", [a, b]) = (name.as_str(), Vec::from_iter(&call.args).as_slice()) {
            for replacement in [self.text_of(*a).to_owned(), self.text_of(*b).to_owned()] {
                self.replace(range(call), replacement);
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.ordering(&Expr::Path(path.clone()), Operation::Unknown);
    }

    fn visit_expr_index(&mut self, expr: &'ast syn::ExprIndex) {
        self.constant(&expr.index, true, true);
        visit::visit_expr_index(self, expr);
    }

    fn visit_expr_range(&mut self, expr: &'ast syn::ExprRange) {
        for bound in [&expr.start, &expr.end].into_iter().flatten() {
            self.constant(bound, true, true);
        }
        visit::visit_expr_range(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let other = match expr.op {
            BinOp::Lt(_) => Some(("<", "<=")),
            BinOp::Le(_) => Some(("<=", "<")),
            BinOp::Gt(_) => Some((">", ">=")),
            BinOp::Ge(_) => Some((">=", ">")),
            BinOp::Eq(_) => Some(("==", "!=")),
            BinOp::Ne(_) => Some(("!=", "==")),
            BinOp::And(_) => Some(("&&", "||")),
            BinOp::Or(_) => Some(("||", "&&")),
            _ => None,
        };
        let whole = range(expr);
        if let Some((from, to)) = other
            && !has_let(&expr.left)
            && !has_let(&expr.right)
        {
            let at = range(&expr.op).start;
            let (left, right) = (&self.text[whole.start..at], &self.text[at + from.len()..whole.end]);
            // The other operator may have a lower precedence than the surrounding expression.
            self.replace(whole, format!("({left}{to}{right})"));
        }
        // If shifting the comparison is equivalent to changing the constant, only the comparison is
        // shifted.
        let (more, less) = match expr.op {
            BinOp::Lt(_) | BinOp::Ge(_) => (false, true),
            BinOp::Le(_) | BinOp::Gt(_) => (true, false),
            BinOp::Shl(_) | BinOp::Shr(_) => (true, true),
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_) => (true, true),
            _ => (false, false),
        };
        self.constant(&expr.right, more, less);
        let (more, less) = match expr.op {
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => (less, more),
            _ => (more, less),
        };
        self.constant(&expr.left, more, less);
        visit::visit_expr_binary(self, expr);
    }
}
