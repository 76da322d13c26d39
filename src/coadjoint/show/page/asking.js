// Questions to the Python behind the page.

export class Asking {
  constructor(token) {
    Object.assign(this, { token, waiting: new Map(), busy: 0, listeners: [] });
  }

  // The answer to a question; an error says why there is none.
  async ask(name, data) {
    this.busy++;
    this.tell();
    try {
      const reply = await fetch("/ask", { method: "POST", headers: { "Content-Type": "application/json", "X-Coadjoint-Token": this.token }, body: JSON.stringify({ ...data, ask: name }) });
      const answer = await reply.json();
      if (answer.error) throw new Error(answer.error);
      return answer;
    } finally {
      this.busy--;
      this.tell();
    }
  }

  // Ask while something moves: one question at a time, and of those that come meanwhile only the last.
  latest(name, data, done) {
    if (this.waiting.has(name)) return void this.waiting.set(name, [data, done]);
    this.waiting.set(name, null);
    const next = async (given, then) => {
      try {
        then(await this.ask(name, given()), null);
      } catch (error) {
        then(null, error);
      }
      const later = this.waiting.get(name);
      this.waiting.set(name, null);
      if (later) next(...later);
      else this.waiting.delete(name);
    };
    next(data, done);
  }

  tell() {
    for (const listener of this.listeners) listener(this.busy);
  }
}
