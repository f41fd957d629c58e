// Migrations by golang-migrate, from as many processes at once as a deployment may start: each takes an advisory lock
// of the session, and one of them does the work.
package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed steps/*.sql
var steps embed.FS

func run(act func(*migrate.Migrate) error) string {
	source, err := iofs.New(steps, "steps")
	if err != nil {
		return err.Error()
	}
	url := fmt.Sprintf("pgx5://%s@%s:%s/%s?application_name=migrate",
		os.Getenv("PGUSER"), os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGDATABASE"))
	m, err := migrate.NewWithSourceInstance("iofs", source, url)
	if err != nil {
		return "open: " + err.Error()
	}
	defer m.Close()
	switch err := act(m); {
	case errors.Is(err, migrate.ErrNoChange):
		return "no change"
	case err != nil:
		return err.Error()
	}
	version, dirty, err := m.Version()
	return fmt.Sprint("at ", version, " ", dirty, " ", err)
}

func all(what string, act func(*migrate.Migrate) error) {
	count, _ := strconv.Atoi(os.Getenv("APP_CLIENTS"))
	found := make([]string, count)
	var group sync.WaitGroup
	for n := range found {
		group.Add(1)
		go func() {
			defer group.Done()
			found[n] = run(act)
		}()
	}
	group.Wait()
	sort.Strings(found)
	for _, line := range found {
		fmt.Println(what, line)
	}
}

func main() {
	all("up", (*migrate.Migrate).Up)
	fmt.Println("down", run(func(m *migrate.Migrate) error { return m.Steps(-1) }))
	all("up again", (*migrate.Migrate).Up)
}
