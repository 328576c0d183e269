//! The program that works for a page.

fn main() {
    trainplan_web::worker();
}
